#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/time.h>
#include <unistd.h>
#include <hdr/hdr_histogram.h>
#include <hdr/hdr_histogram_log.h>
#include <hdr/hdr_time.h>
static void fill(struct hdr_histogram* h, int n, unsigned seed){ srand(seed); for(int i=0;i<n;i++) hdr_record_value(h, 100 + rand()%900 + (i%100==0? 20000:0)); }
int main(void){
  char name[200], utc[32]; time_t t=time(NULL); struct tm* g=gmtime(&t); strftime(utc,32,"%Y-%m-%dT%H:%M:%SZ",g);
  hdr_timespec s,e; struct hdr_log_writer w; hdr_log_writer_init(&w);
  struct hdr_histogram *r,*wr; hdr_init(1,1000000,3,&r); hdr_init(1,1000000,3,&wr);
  struct timeval tp; gettimeofday(&tp,NULL);
  hdr_gettime(&s);
  hdr_timespec now0; hdr_getnow(&now0);
  fill(r,5000,1); fill(wr,3000,2); usleep(3400000);
  hdr_gettime(&e);
  const char* ops[]={"read","write"}; struct hdr_histogram* hs[]={r,wr};
  for(int i=0;i<2;i++){ snprintf(name,200,"%s_%s.hdrhist",ops[i],utc); FILE* f=fopen(name,"a"); hdr_log_write_header(&w,f,utc,&s); hdr_log_write(&w,f,&s,&e,hs[i]); fclose(f);}  
  FILE* f=fopen("mpt.hlog","w"); hdr_log_write_header(&w,f,"mpt",&now0); hdr_log_write(&w,f,&s,&e,r); fclose(f);
  hdr_timespec b,n; b.tv_sec=tp.tv_sec; b.tv_nsec=tp.tv_usec; gettimeofday(&tp,NULL); n.tv_sec=tp.tv_sec; n.tv_nsec=tp.tv_usec;
  f=fopen("READ.hdr","w"); hdr_log_write_header(&w,f,"Logging for: READ",&b); hdr_log_write(&w,f,&b,&n,r); fclose(f);
  f=fopen("entry.hlog","w"); hdr_log_write_header(&w,f,"entries",&b); for(int i=0;i<3;i++){ struct hdr_log_entry en; memset(&en,0,sizeof en); en.start_timestamp.tv_sec=i; en.start_timestamp.tv_nsec=250000000; en.interval.tv_sec=1; hdr_log_write_entry(&w,f,&en,r);} fclose(f);
  printf("%ld %ld\n",(long)hdr_max(r),(long)hdr_max(wr));
}
