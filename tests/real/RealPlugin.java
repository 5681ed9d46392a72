import java.io.IOException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.lucene.search.Query;
import org.elasticsearch.Build;
import org.elasticsearch.client.internal.node.NodeClient;
import org.elasticsearch.cluster.metadata.IndexNameExpressionResolver;
import org.elasticsearch.cluster.node.DiscoveryNodes;
import org.elasticsearch.common.io.stream.NamedWriteableRegistry;
import org.elasticsearch.common.settings.ClusterSettings;
import org.elasticsearch.common.settings.IndexScopedSettings;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.common.settings.SettingsFilter;
import org.elasticsearch.features.NodeFeature;
import org.elasticsearch.index.mapper.DocumentParserContext;
import org.elasticsearch.index.mapper.FieldMapper;
import org.elasticsearch.index.mapper.MappedFieldType;
import org.elasticsearch.index.mapper.Mapper;
import org.elasticsearch.index.mapper.MapperBuilderContext;
import org.elasticsearch.index.mapper.SourceValueFetcher;
import org.elasticsearch.index.mapper.TextSearchInfo;
import org.elasticsearch.index.mapper.ValueFetcher;
import org.elasticsearch.index.query.SearchExecutionContext;
import org.elasticsearch.plugins.ActionPlugin;
import org.elasticsearch.plugins.MapperPlugin;
import org.elasticsearch.plugins.Plugin;
import org.elasticsearch.rest.BaseRestHandler;
import org.elasticsearch.rest.RestController;
import org.elasticsearch.rest.RestHandler;
import org.elasticsearch.rest.RestRequest;
import org.elasticsearch.rest.RestResponse;
import org.elasticsearch.rest.RestStatus;
import org.elasticsearch.xcontent.XContentBuilder;

/** What the server of Maven Central lacks and tailboard needs: GET /, and fields of type histogram, whose source is kept alone. */
public class RealPlugin extends Plugin implements MapperPlugin, ActionPlugin {
  @Override
  public Map<String, Mapper.TypeParser> getMappers() {
    return Map.of("histogram", new FieldMapper.TypeParser((name, context) -> new Kept.Builder(name)));
  }

  @Override
  public Collection<RestHandler> getRestHandlers(
      Settings settings,
      NamedWriteableRegistry registry,
      RestController controller,
      ClusterSettings clusterSettings,
      IndexScopedSettings indexSettings,
      SettingsFilter filter,
      IndexNameExpressionResolver resolver,
      Supplier<DiscoveryNodes> nodes,
      Predicate<NodeFeature> features) {
    return List.of(new Root());
  }

  static class Root extends BaseRestHandler {
    @Override
    public String getName() {
      return "root";
    }

    @Override
    public List<Route> routes() {
      return List.of(new Route(RestRequest.Method.GET, "/"), new Route(RestRequest.Method.HEAD, "/"));
    }

    @Override
    protected RestChannelConsumer prepareRequest(RestRequest request, NodeClient client) {
      return channel -> {
        try (XContentBuilder out = channel.newBuilder()) {
          out.startObject().startObject("version").field("number", Build.current().version()).endObject().endObject();
          channel.sendResponse(new RestResponse(RestStatus.OK, out));
        }
      };
    }
  }

  static class Kept extends FieldMapper {
    Kept(String leaf, MappedFieldType type, BuilderParams params) {
      super(leaf, type, params);
    }

    @Override
    protected boolean supportsParsingObject() {
      return true;
    }

    @Override
    public void parse(DocumentParserContext context) throws IOException {
      context.parser().skipChildren();
      context.addToFieldNames(fieldType().name());
    }

    @Override
    protected void parseCreateField(DocumentParserContext context) {
      throw new UnsupportedOperationException();
    }

    @Override
    public FieldMapper.Builder getMergeBuilder() {
      return new Builder(leafName()).init(this);
    }

    @Override
    protected String contentType() {
      return "histogram";
    }

    static class Builder extends FieldMapper.Builder {
      private final Parameter<Map<String, String>> meta = Parameter.metaParam();

      Builder(String name) {
        super(name);
      }

      @Override
      protected Parameter<?>[] getParameters() {
        return new Parameter<?>[] {meta};
      }

      @Override
      public FieldMapper build(MapperBuilderContext context) {
        return new Kept(leafName(), new Type(context.buildFullName(leafName()), meta.getValue()), builderParams(this, context));
      }
    }

    static class Type extends MappedFieldType {
      Type(String name, Map<String, String> meta) {
        super(name, false, false, false, TextSearchInfo.NONE, meta);
      }

      @Override
      public ValueFetcher valueFetcher(SearchExecutionContext context, String format) {
        return SourceValueFetcher.identity(name(), context, format);
      }

      @Override
      public String typeName() {
        return "histogram";
      }

      @Override
      public Query termQuery(Object value, SearchExecutionContext context) {
        throw new IllegalArgumentException("a histogram is not searched for");
      }
    }
  }
}
